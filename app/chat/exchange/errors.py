"""What a file of chats can be refused for."""


class ExchangeError(Exception):
    """The file holds no chats, or cannot be read; the text is a sentence for a person."""
