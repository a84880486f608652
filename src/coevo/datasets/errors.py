"""Errors of data sets."""


class DatasetError(Exception):
    """A data set cannot be used; the message says which, why, and what to do."""


class MissingDataError(DatasetError, FileNotFoundError):
    """A file of the data set is not in the data folder."""


class WrongContentError(DatasetError, ValueError):
    """A file is there, but it does not hold what was published."""


class DownloadError(DatasetError, OSError):
    """A file could not be fetched from any of its addresses."""
