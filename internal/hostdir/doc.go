// Package hostdir describes the files of a host: the documents in force, SVIDs with their keys, the
// state of each need, and changes that are not confirmed yet. Activation writes them; all other
// programs only read.
package hostdir
