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
// string field with the tag "want" is required, and the tag says what to write. The tag "path"
// marks paths, which may be relative to the file.
type Section interface {
	// Kind returns the kind. It looks for external resources only when it runs.
	Kind(p Process) AnyKind
}
