// Package needstate implements the state machine of a need: when it is requested, how an attempt
// changes its state, and the record on disk from which a restart continues.
package needstate
