// Package usage accounts for the memory of each connection between forwarders, closes the
// connection that uses most while memory is short, and pools the buffers for forwarded bytes.
package usage
