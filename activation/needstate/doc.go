// Package needstate is the state machine of a need: when it is requested, what an attempt
// changes, and what is on disk of it, so that a restart continues.
package needstate
