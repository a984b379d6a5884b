// Package hostdir defines where a host keeps its state in the file system, and reads this state.
// The state consists of the documents in force, the SVIDs with their keys, the state of each need,
// and changes that are not confirmed yet. Only activation writes these files. All other programs
// only read them, and follow their changes.
package hostdir
