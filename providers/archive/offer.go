package archive

import (
	"context"
	"slices"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

// Has describes what a host has received already.
type Has struct {
	Documents string // tag of its documents; empty if it has none
	List      int64  // number of its revocation list; negative if it receives none with its documents
	Grants    string // tag of its access grants; empty if it has no use for grants
}

// Offer returns what is new for a host: its documents, which are all of one version, the revocation
// list, and access grants for the roles whose requests name the host. If the host has the newest
// documents, list and grants, the Artifact is NotModified. If there are no documents for the host,
// the error is ErrNone or ErrRestored.
func (a Archive) Offer(ctx context.Context, host string, has Has, requests map[string]document.RequestPolicy) (hostapi.Artifact, error) {
	newest, err := a.Revocations(ctx) // first, because the list names documents that hosts must get
	if err != nil {
		return hostapi.Artifact{}, err
	}
	documents, same, err := a.Documents(ctx, host, has.Documents)
	if err == nil && !same && len(documents) == 0 {
		err = ErrNone
	}
	if err != nil {
		return hostapi.Artifact{}, err
	}
	offered := hostapi.Artifact{Documents: documents, NotModified: same}
	if has.List >= 0 && newest.Number > has.List {
		offered.Revocations = &newest.Signed
	}
	if has.Grants != "" {
		access, err := a.Access(ctx, time.Now())
		if err != nil {
			return hostapi.Artifact{}, err
		}
		if grants := access.of(host, requests); grants.Tag() != has.Grants {
			offered.Grants = &grants
		}
	}
	if same && (offered.Revocations != nil || offered.Grants != nil) {
		offered.Documents, offered.NotModified = []hostapi.SignedDocument{}, false
	}
	return offered, nil
}

// of returns the grants for the roles that a host gets grants for, and the statements that end
// them.
func (s Access) of(host string, requests map[string]document.RequestPolicy) hostapi.Grants {
	of := []accessgrant.Signed{}
	for _, signed := range s.Grants {
		if g, err := signed.Open(); err == nil && slices.Contains(requests[g.Role].Hosts, host) {
			of = append(of, signed)
		}
	}
	return of
}

// Documents returns the documents that a host should have now, or none if there are none for the
// host. The last argument is the tag of the documents that the host already has, or empty. If these
// are up to date, same is true and no documents are returned. The result can change only when the
// key config/rollout or a key below config/version/ changes.
func (a Archive) Documents(ctx context.Context, host, has string) (found []hostapi.SignedDocument, same bool, err error) {
	err = a.offered(ctx, host, func(entries []entry) (err error) {
		if same = has != "" && tagOf(entries) == has; same {
			return nil
		}
		found, err = a.documents(ctx, entries)
		return err
	})
	return found, same, err
}

func tagOf(entries []entry) string {
	var envelopes [][]byte
	for _, e := range entries {
		envelopes = append(envelopes, []byte(e.Envelope))
	}
	return hostapi.Tag(envelopes...)
}
