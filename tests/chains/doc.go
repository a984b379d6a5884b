// Package chains shows odd certificate chains to every part that verifies one, in real
// handshakes.
package chains
