package server

import (
	"log/slog"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
)

// Process holds the resources of a process that a kind may use.
type Process struct {
	Instance hostdir.Instance
	Dir      string // for what is this process's alone
	Store    store.Store
	Key      *sealedstore.Key
	Policies *Policies
	Audit    *Audit
	Log      *tlog.Log // of the audit rows
	Logger   *slog.Logger
}

// Section is a kind's section of the settings file of a provider host: a pointer to a struct. A
// string field may have a default value in the tag "default". The tag "path" marks paths. They may be
// relative to the file, and defaults are relative to the directory of the kind's process.
type Section interface {
	// Kind returns the kind. It looks for external resources only when it runs.
	Kind(p Process) AnyKind
}
