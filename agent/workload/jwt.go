package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/jwtbundle"
	api "github.com/spiffe/go-spiffe/v2/proto/spiffe/workload"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/jwtsvid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
)

// tokens maps an audience to the JWT-SVID that was delivered for it.
type tokens map[string]string

// jwts contains the JWT-SVIDs of this host and the keys that verify other JWT-SVIDs. It is
// immutable.
type jwts struct {
	keys   *jwtbundle.Bundle // nil until the keys are delivered
	jwks   []byte            // the keys as they were delivered
	tokens map[spiffe.ID]tokens
	wanted map[spiffe.ID][]string // audiences in the manifest, by identity
}

// loadJWTs reads the files that needs of kind jwt have delivered. If a file cannot be read, the
// result contains the file's previous content, which is in the argument old.
func loadJWTs(layout hostdir.Layout, m document.Manifest, old jwts) (next jwts, problems []error) {
	next = jwts{tokens: map[spiffe.ID]tokens{}, wanted: map[spiffe.ID][]string{}}
	for _, n := range m.Needs {
		if n.Kind != document.KindJWT {
			continue
		}
		r, err := n.JWT()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		dir := layout.Need(n.ID)
		if r.ID.IsZero() {
			next.keys, next.jwks = old.keys, old.jwks
			if jwks, keys, err := readKeys(dir, m.TrustDomain); err == nil {
				next.keys, next.jwks = keys, jwks
			} else if !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, fmt.Errorf("need %q: %w", n.ID, err))
			}
			continue
		}
		next.wanted[r.ID] = r.Audiences
		next.tokens[r.ID] = old.tokens[r.ID]
		b, err := hostdir.ReadDelivered(dir, document.FileTokens)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var read tokens
		if err == nil {
			err = json.Unmarshal(b, &read)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("need %q: %s: %w", n.ID, document.FileTokens, err))
			continue
		}
		next.tokens[r.ID] = read
	}
	return next, problems
}

func readKeys(dir, trustDomain string) ([]byte, *jwtbundle.Bundle, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil {
		return nil, nil, err
	}
	jwks, err := hostdir.ReadDelivered(dir, document.FileJWTKeys)
	if err != nil {
		return nil, nil, err
	}
	keys, err := jwtbundle.Parse(td, jwks)
	return jwks, keys, err
}

func noKeys() error {
	return status.Error(codes.Unavailable, "no keys of JWT-SVIDs are delivered on this host, want providers.jwt in the topology: flor doctor")
}

// FetchJWTSVID returns the delivered JWT-SVIDs of the caller for one audience. If the request names
// a SPIFFE ID, it returns only the JWT-SVID of this ID. Otherwise, it returns one for each ID of
// the caller, in the order of the manifest. It returns an error if there is no valid JWT-SVID for
// the audience. It implements the SPIFFE Workload API.
func (s *server) FetchJWTSVID(ctx context.Context, r *api.JWTSVIDRequest) (*api.JWTSVIDResponse, error) {
	c := clientOf(ctx)
	st := s.state.Load()
	ids, err := s.entitled(c, st)
	if err != nil {
		return nil, err
	}
	if len(r.Audience) != 1 || r.Audience[0] == "" {
		return nil, status.Errorf(codes.InvalidArgument, "%d audiences, want one: a token for several lets each of them act as its owner to the others", len(r.Audience))
	}
	if r.SpiffeId != "" {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id spiffe.ID) bool { return id.String() != r.SpiffeId })
		if len(ids) == 0 {
			err := status.Errorf(codes.PermissionDenied, "%.300q is no identity of process %d", r.SpiffeId, c.PID)
			s.refuse(c, "other-identity", true, err)
			return nil, err
		}
	}
	all, err := st.jwtSVIDs(ids, r.Audience[0], time.Now())
	if err != nil {
		s.refuse(c, "no-token", true, err)
		return nil, err
	}
	s.Log.Info("sent", "what", "JWTSVIDResponse", "process", c.PID, "uid", c.UID, "of", shorts(ids), "audience", r.Audience[0])
	return &api.JWTSVIDResponse{Svids: all}, nil
}

// jwtSVIDs returns the valid JWT-SVIDs of the given identities for an audience. If there is no such
// JWT-SVID, the error says why.
func (st *state) jwtSVIDs(ids []spiffe.ID, audience string, now time.Time) (all []*api.JWTSVID, err error) {
	var missing, undeclared []string
	for _, id := range ids {
		if !slices.Contains(st.jwts.wanted[id], audience) {
			undeclared = append(undeclared, fmt.Sprintf("services.%s.jwtAudiences does not have %.300q", id.Name(), audience))
			continue
		}
		token, ok := st.jwts.tokens[id][audience]
		if !ok {
			missing = append(missing, "the token of "+id.Short()+" is not delivered yet")
			continue
		}
		svid, err := jwtsvid.ParseInsecure(token, []string{audience})
		if err == nil && !svid.Expiry.After(now) {
			err = fmt.Errorf("expired at %s", svid.Expiry.Format(time.RFC3339))
		}
		if err == nil {
			err = st.checkRevoked(svid)
		}
		if err != nil {
			missing = append(missing, fmt.Sprintf("the token of %s: %v", id.Short(), err))
			continue
		}
		all = append(all, &api.JWTSVID{SpiffeId: id.String(), Svid: token, Hint: hint(id)})
	}
	switch {
	case len(all) > 0:
		return all, nil
	case len(missing) > 0:
		return nil, status.Errorf(codes.Unavailable, "%s: flor doctor", strings.Join(missing, "; "))
	}
	return nil, status.Errorf(codes.PermissionDenied, "%s: write it there", strings.Join(undeclared, "; "))
}

// checkRevoked returns an error if a JWT-SVID must not be accepted, because its identity or the
// node that received it was revoked.
func (st *state) checkRevoked(svid *jwtsvid.SVID) error {
	if st.identities.Trust == nil {
		return nil
	}
	id, err := spiffe.ParseID(svid.ID.String())
	if err != nil {
		if svid.ID.TrustDomain().Name() != st.trust {
			return nil // another implementation has other paths, which are never revoked here
		}
		return err
	}
	issued, _ := svid.Claims["iat"].(float64)
	node, _ := svid.Claims[document.ClaimNode].(string)
	return st.identities.Trust.Revocations().CheckIssued(id, node, time.Unix(int64(issued), 0))
}

// FetchJWTBundles sends the keys that verify JWT-SVIDs, and sends them again whenever they change.
// They are the keys of this trust domain, and of the trust domains whose identities may call the
// caller. It implements the SPIFFE Workload API.
func (s *server) FetchJWTBundles(_ *api.JWTBundlesRequest, out grpc.ServerStreamingServer[api.JWTBundlesResponse]) error {
	return push(s, out, func(st *state, ids []spiffe.ID) (*api.JWTBundlesResponse, error) {
		all, err := st.foreignKeys(ids)
		switch {
		case err != nil:
			return nil, status.Error(codes.Internal, err.Error())
		case st.jwts.keys != nil:
			all["spiffe://"+st.trust] = st.jwts.jwks
		case len(all) == 0:
			return nil, noKeys()
		}
		return &api.JWTBundlesResponse{Bundles: all}, nil
	})
}

// ValidateJWTSVID verifies the signature, the audience and the validity of a JWT-SVID for a caller
// with an identity. It also checks that the SPIFFE ID was not revoked. It implements the SPIFFE
// Workload API.
func (s *server) ValidateJWTSVID(ctx context.Context, r *api.ValidateJWTSVIDRequest) (*api.ValidateJWTSVIDResponse, error) {
	st := s.state.Load()
	ids, err := s.entitled(clientOf(ctx), st)
	if err != nil {
		return nil, err
	}
	keys := jwtbundle.NewSet()
	if st.jwts.keys != nil {
		keys.Add(st.jwts.keys)
	}
	for _, b := range st.foreign(ids) {
		keys.Add(b.SPIFFE().JWTBundle())
	}
	switch {
	case r.Audience == "":
		return nil, status.Error(codes.InvalidArgument, "no audience")
	case keys.Len() == 0:
		return nil, noKeys()
	}
	svid, err := jwtsvid.ParseAndValidate(r.Svid, keys, []string{r.Audience})
	if err == nil && !svid.Expiry.After(time.Now()) { // go-spiffe accepts an expired token for another minute
		err = fmt.Errorf("token has expired at %s", svid.Expiry.UTC().Format(time.RFC3339))
	}
	if err == nil {
		err = st.checkRevoked(svid)
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	claims, err := structpb.NewStruct(svid.Claims)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "claims: %v", err)
	}
	return &api.ValidateJWTSVIDResponse{SpiffeId: svid.ID.String(), Claims: claims}, nil
}
