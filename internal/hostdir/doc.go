// Package hostdir describes the files in which a host keeps its state: the documents in force,
// SVIDs with their keys, the state of each need, and changes that are not confirmed yet. Activation
// writes the files, and all other programs only read them.
package hostdir
