"""What is wrong with the settings of a pipeline?"""
