"""The data engine: compiled operators over columns of text, and caches of what they computed.

Works on Arrow and NumPy arrays and knows neither rows nor pools; `actions` and `pool` call down into it.
"""
