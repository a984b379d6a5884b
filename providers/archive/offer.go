package archive

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/rollout"
	"github.com/florete/florete/providers/store"
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

// offering is a consistent view of the state that decides which documents hosts are offered.
type offering struct {
	rollout Rollout
	newest  Version
}

// offering reads the rollout and the newest version. If either has changed meanwhile, it reads both
// again, because the newest version may belong to another rollout.
func (a Archive) offering(ctx context.Context) (offering, error) {
	r, err := a.Rollout(ctx)
	for err == nil {
		newest, failed := a.Newest(ctx)
		if failed != nil && !errors.Is(failed, ErrNone) {
			return offering{}, failed
		}
		var now Rollout
		if now, err = a.Rollout(ctx); err == nil && now.revision == r.revision {
			return offering{r, newest}, failed
		}
		r = now
	}
	return offering{}, err
}

// offered reads the documents that a host is offered. If they are removed during the read, it
// starts again.
func (a Archive) offered(ctx context.Context, host string, read func([]entry) error) error {
	is, err := a.memory.read(ctx, a.offering)
	for err == nil {
		entries, err := a.entriesFor(ctx, is.rollout, is.newest, host)
		if err == nil {
			err = read(entries)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		now, failed := a.memory.read(ctx, a.offering)
		if failed != nil || now.rollout.revision == is.rollout.revision && now.newest.Tree == is.newest.Tree {
			return err
		}
		is = now
	}
	return err
}

// entriesFor returns the documents that a host is offered during a rollout to the newest version.
func (a Archive) entriesFor(ctx context.Context, r Rollout, newest Version, host string) ([]entry, error) {
	entries, err := a.entries(ctx, newest, host)
	if err != nil || !r.AtWork() {
		return entries, err
	}
	wave, group := 0, ""
	if len(entries) > 0 {
		wave, group = entries[0].Wave, entries[0].Group
	}
	stage, bridged := r.Stage(host, wave, group)
	from := newest.Serial
	switch {
	case stage == rollout.StageFormer, stage == rollout.StagePolicy, len(entries) == 0 && r.Status != rollout.Returning:
		from = r.Former
	case stage == rollout.StageVersion, stage == rollout.StageWhole:
		from = r.Serial
	}
	if from != newest.Serial {
		v, err := a.version(ctx, from)
		if err != nil {
			return nil, err
		}
		if entries, err = a.entries(ctx, v, host); err != nil {
			return nil, err
		}
	}
	if r.Bridge == nil || !bridged {
		return entries, nil
	}
	bridge, err := a.entries(ctx, *r.Bridge, host)
	if err != nil || len(bridge) == 0 {
		return entries, err
	}
	return append(slices.DeleteFunc(slices.Clone(entries), isPolicy), bridge[0]), nil
}

func tagOf(entries []entry) string {
	var envelopes [][]byte
	for _, e := range entries {
		envelopes = append(envelopes, []byte(e.Envelope))
	}
	return hostapi.Tag(envelopes...)
}
