// Package needstate implements the state machine of a need, such as a certificate that a host must
// have. It decides when the need is requested and how an attempt changes its state, and keeps the
// record on disk from which a restart continues.
package needstate
