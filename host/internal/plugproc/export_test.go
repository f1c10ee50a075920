package plugproc

// Fakes is what the test binary can be, for tests outside of the package.
var Fakes = fakes
