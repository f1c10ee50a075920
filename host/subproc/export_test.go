package subproc

// Executable is for benchmarks that need a complete host, which this package
// does not import.
var Executable = ownPath
