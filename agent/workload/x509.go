package workload

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/spiffe/go-spiffe/v2/proto/spiffe/workload"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/spiffe"
)

// FetchX509SVID sends the X.509-SVIDs of the caller with their private keys, in the order of the
// manifest, and sends them again whenever they change. It implements the SPIFFE Workload API.
func (s *server) FetchX509SVID(_ *api.X509SVIDRequest, out grpc.ServerStreamingServer[api.X509SVIDResponse]) error {
	return push(s, out, func(st *state, ids []spiffe.ID) (*api.X509SVIDResponse, error) {
		svids, err := st.svids(ids)
		return &api.X509SVIDResponse{Svids: svids, FederatedBundles: st.foreignRoots(ids)}, err
	})
}

// FetchX509Bundles sends the root certificates that verify X.509-SVIDs, and sends them again
// whenever they change. They are the roots of this trust domain, and of the trust domains whose
// identities may call the caller. It implements the SPIFFE Workload API.
func (s *server) FetchX509Bundles(_ *api.X509BundlesRequest, out grpc.ServerStreamingServer[api.X509BundlesResponse]) error {
	return push(s, out, func(st *state, ids []spiffe.ID) (*api.X509BundlesResponse, error) {
		if st.identities.Trust == nil {
			return nil, status.Error(codes.Unavailable, "no manifest is accepted on this host yet: flor doctor")
		}
		all := st.foreignRoots(ids)
		all["spiffe://"+st.trust] = raw(st.identities.Trust)
		return &api.X509BundlesResponse{Bundles: all}, nil
	})
}

// push sends a response to a caller, and sends a new one whenever the content changes. Before each
// response it checks again which identities the manifest grants to the caller.
func push[M any, P interface {
	*M
	proto.Message
}](s *server, out grpc.ServerStreamingServer[M], answer func(*state, []spiffe.ID) (P, error)) error {
	c := clientOf(out.Context())
	var sent P
	for {
		st := s.state.Load()
		ids, err := s.entitled(c, st)
		if err != nil {
			return err
		}
		a, err := answer(st, ids)
		if err != nil {
			s.refuse(c, "not-delivered", true, err)
			return err
		}
		if sent == nil || !proto.Equal(a, sent) {
			if err := out.Send(a); err != nil {
				return err
			}
			s.Log.Info("sent", "what", a.ProtoReflect().Descriptor().Name(), "process", c.PID, "uid", c.UID, "of", shorts(ids))
			sent = a
		}
		select {
		case <-st.changed:
		case <-out.Context().Done():
			return status.FromContextError(context.Cause(out.Context())).Err()
		}
	}
}

// entitled returns the identities that the manifest grants to a client.
func (s *server) entitled(c client, st *state) ([]spiffe.ID, error) {
	p, err := c.Process()
	if err != nil {
		s.refuse(c, "caller-gone", false, err)
		return nil, status.Error(codes.PermissionDenied, err.Error())
	}
	ids := st.callers.Workload(p)
	if len(ids) == 0 {
		err := status.Errorf(codes.PermissionDenied,
			"no identity is issued to process %d of uid %d: want it to be of a service's user, or of a unit among hosts.<host>.callers, with services.<name>.workloadApi = true in the topology", c.PID, p.UID)
		s.refuse(c, "unknown-caller", false, err)
		return nil, err
	}
	return ids, nil
}

func (s *server) refuse(c client, reason string, known bool, err error) {
	s.refused.Warn(journal.Source{Reason: reason, Who: fmt.Sprintf("uid %d", c.UID), Known: known}, "refused", "reason", reason, "process", c.PID, "uid", c.UID, "detail", status.Convert(err).Message())
}

// svids returns the valid X.509-SVIDs of the given identities. If there is no such SVID, the error
// says why.
func (st *state) svids(ids []spiffe.ID) (all []*api.X509SVID, err error) {
	var missing []string
	for _, id := range ids {
		svid := st.identities.SVID(id)
		if svid == nil {
			missing = append(missing, "the certificate of "+id.Short()+" is not delivered yet")
			continue
		}
		if err := svid.Check(st.identities.Trust, time.Now()); err != nil {
			missing = append(missing, err.Error())
			continue
		}
		key, err := x509.MarshalPKCS8PrivateKey(svid.Cert.PrivateKey)
		if err != nil {
			return nil, status.Errorf(codes.Internal, "key of %s: %v", id.Short(), err)
		}
		all = append(all, &api.X509SVID{
			SpiffeId: id.String(), X509Svid: slices.Concat(svid.Cert.Certificate...), X509SvidKey: key,
			Bundle: raw(st.identities.Trust), Hint: hint(id),
		})
	}
	if len(all) == 0 {
		return nil, status.Errorf(codes.Unavailable, "%s: flor doctor", strings.Join(missing, "; "))
	}
	return all, nil
}

// hint returns the hint of an SVID, by which a caller with several SVIDs selects one. For example,
// the hint is "wiki", or "wiki.forge" for a service of the node forge.
func hint(id spiffe.ID) string {
	if id.Node() == "" {
		return id.Name()
	}
	return id.Name() + "." + id.Node()
}

func shorts(ids []spiffe.ID) string {
	var words []string
	for _, id := range ids {
		words = append(words, id.Short())
	}
	return strings.Join(words, " ")
}
