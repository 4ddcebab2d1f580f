"""What does every host read?"""
