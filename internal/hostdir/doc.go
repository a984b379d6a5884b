// Package hostdir has what lies where on a host's disk: the documents in force, SVIDs with their keys,
// the state of each need, and changes that are not confirmed yet. Activation writes, all others read.
package hostdir
