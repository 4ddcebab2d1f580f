"""Where and why do two orders, or two plans, differ?"""
