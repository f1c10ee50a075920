// Command tea runs agent workflows.
package main

func main() {}
