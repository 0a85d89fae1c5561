"""What tests ask of a data set."""


def told(found):
    return {failure.case: failure.reason for failure in found.failures}
