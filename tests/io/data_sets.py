"""What tests ask of a data set."""


def masks_of(found):
    return {case.id: case.mask and case.mask.path.name for case in found.cases}


def told(found):
    return {each.case: each.reason for each in found.unpaired}
