// Package needstate implements the state machine of a need, such as a certificate that a host must
// have. It decides when the need is requested, and how the result of a request changes the state.
// It stores the state on disk, so that activation continues from it after a restart.
package needstate
