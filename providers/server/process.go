package server

import (
	"log/slog"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
)

// Process contains the resources that a server process gives to its kind of need, such as the state
// store.
type Process struct {
	Instance hostdir.Instance
	Dir      string // directory that this process alone uses
	Store    store.Store
	Key      *sealedstore.Key
	Policies *Policies
	Audit    *Audit
	Log      *tlog.Log // tamper-evident log of the audit rows
	Logger   *slog.Logger
}

// Section is a part of a provider's settings file: the settings of one kind of need. It must be a
// pointer to a struct.
//
// The tag "default" of a string field contains the field's default value. The tag "path" marks a
// path. If a path in the file is relative, it is relative to the directory of the file. A relative
// default is relative to the directory of the kind's process.
type Section interface {
	// Kind returns the kind of need with these settings. It uses no external resources before it
	// runs.
	Kind(p Process) AnyKind
}
