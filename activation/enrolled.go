package activation

import (
	"context"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/hostapi"
)

// identity is the identity file left by flor enroll, nil for none, with its modification time.
type identity struct {
	file *hostapi.IdentityFile
	left int64
}

// acceptEnrolled puts the documents of an identity file in force once for each file, under the
// rules for documents from the network.
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

// enrolledFor returns the time of the identity file that fulfils a need, zero for none.
func (a *activation) enrolledFor(n *need) int64 {
	if !a.host.Gives(a.identity.file, n.Need.Need) {
		return 0
	}
	return a.identity.left
}

// forgetEnrolled removes an identity file when its certificates have been delivered and its
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
