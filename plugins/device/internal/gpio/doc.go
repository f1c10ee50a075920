// Package gpio has the actions gpio.read, gpio.write, gpio.pulse and gpio.watch, on the
// character device of Linux. Start with [Part]; kernel_linux.go has the system calls.
package gpio
