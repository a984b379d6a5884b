package activation

import (
	"context"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/hostapi"
)

// identity is the identity file that flor identity install left for activation.
type identity struct {
	file *hostapi.IdentityFile // nil if there is none
	left int64                 // modification time
}

// acceptEnrolled accepts the documents contained in an identity file, once for each file. The rules
// are the same as for documents from the network.
func (a *activation) acceptEnrolled(ctx context.Context) {
	f, left, err := fetch.ReadEnrolled(a.State)
	if err != nil {
		a.table.Disk("documents", err)
	}
	a.identity = identity{f, left}
	if f == nil {
		return
	}
	if left == a.enrolled {
		a.forgetEnrolled()
		return
	}
	a.enrolled = left
	if e := a.documents.Accept(ctx, f.Artifact, "taken from an identity file"); e != nil && e.Code != documents.CodeOlder.Name {
		a.report(event.Event{Event: event.Disk, Need: "documents", Message: "of an identity file: " + e.Message})
	}
	if _, changed := a.documents.Changed(); !changed {
		a.forgetEnrolled()
	}
}

// enrolledFor returns the modification time of the identity file if that file fulfils the given
// need. Otherwise it returns zero.
func (a *activation) enrolledFor(n *need) int64 {
	if !a.host.Gives(a.identity.file, n.Need.Need) {
		return 0
	}
	return a.identity.left
}

// forgetEnrolled removes the identity file when its certificates have been delivered and its
// documents accepted.
func (a *activation) forgetEnrolled() {
	if a.identity.file == nil {
		return
	}
	a.Step("forget enrolled")
	if err := a.host.ForgetEnrolled(a.enrolled); err != nil {
		a.table.Disk("documents", err)
	}
}
