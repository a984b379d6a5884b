// Package usage counts what each connection between forwarders holds, closes the one that holds the most
// while memory is short, and lends the buffers that bytes pass through.
package usage
