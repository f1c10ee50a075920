package confine

// nonBlock is empty: there are no pipes.
const nonBlock = 0
