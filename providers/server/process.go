package server

import (
	"log/slog"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
)

// Process contains the resources of a server process that its kind of need may use, such as the
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

// Section is a section of a provider's settings file, with the settings of one kind of need. It
// must be a pointer to a struct. The tag "default" of a string field contains the field's default
// value. The tag "path" marks a path. A path in the file may be relative to the file, and a default
// path is relative to the directory of the kind's process.
type Section interface {
	// Kind returns the kind of need with these settings. It uses no external resources before it
	// runs.
	Kind(p Process) AnyKind
}
