"""Pictures of answers: drawn once, as marks in a frame, and written as SVG or HTML."""
