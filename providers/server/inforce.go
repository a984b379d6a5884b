package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/providers/store"
)

const inForcePrefix = "inforce/"

// These are the outcomes of audit rows that do not record the decision about a request.
const (
	Changed Outcome = "changed" // something else came into force here
	Alarmed Outcome = "alarm"   // an operator must look at it
)

// These are the codes of audit rows whose outcome is Changed.
const (
	CodeInForce  = "in-force"
	CodeRollback = "rollback" // the serial is lower than that of the former version
)

// Alarm describes an event that an operator must look at. The server writes an audit row about it.
type Alarm struct {
	Code, Message string
	Detail        map[string]string
}

// listRecord is the name under which the version of the revocation list is recorded. The versions
// of other data are recorded under the names of kinds.
const listRecord = "revocations"

// Deployed is an optional interface of a Kind. It is for a kind that uses data that people replace,
// such as an issuing certificate. The server writes an audit row when that data changes.
type Deployed interface {
	// InForce returns the version of the data that the kind serves now, or the zero Version if
	// there is none.
	InForce(ctx context.Context) (Version, error)
}

// Version identifies data that people replace from time to time, such as a policy or a certificate.
// The server compares it with the last one to notice a change.
type Version struct {
	Name   string            `json:"-"`      // name of the data that has versions
	Digest string            `json:"digest"` // digest that distinguishes the version from all others
	Serial int64             `json:"serial"` // number that orders versions; zero if there is none
	Detail map[string]string `json:"-"`      // for the audit row; no secrets
}

// alarm adds the audit row of an alarm to a change. The decision about the request with the row r
// raised the alarm.
func (c *Change) alarm(r Row, a *Alarm) {
	if a == nil {
		return
	}
	r.Outcome, r.Code, r.Message, r.Detail = Alarmed, a.Code, a.Message, a.Detail
	c.Then = append(c.Then, r.Op())
	c.alarms = append(c.alarms, r)
}

func (r Row) level() slog.Level {
	switch {
	case r.Outcome == Alarmed:
		return slog.LevelError
	case r.Outcome == Granted, r.Outcome == Summed, r.Outcome == Changed && r.Code != CodeRollback:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// versionRecorder records each change of the versions that are in force.
type versionRecorder struct {
	*Server
	recorded map[string]string // digests by kind
	failed   journal.Once
}

// record records the versions that are not recorded yet. If this fails, the next call tries again.
func (s *versionRecorder) record(ctx context.Context) {
	if err := s.recordAll(ctx); ctx.Err() == nil && s.failed.News(err) {
		s.Logger.Error("cannot record what is in force", "error", err)
	}
}

func (s *versionRecorder) recordAll(ctx context.Context) error {
	f := s.Policies.now.Load()
	versions := map[string]Version{"policy": {
		Name: "the policy", Digest: document.Digest(f.envelope), Serial: f.serial,
		Detail: map[string]string{"rev": f.rev, "grants": fmt.Sprint(len(f.Grants)), "roots": strings.Join(f.roots.Fingerprints(), " ")},
	}}
	list := Version{Name: "the revocation list", Digest: "none"}
	if l := f.roots.Revocations(); l != nil {
		list.Digest, list.Serial = fmt.Sprint(l.Number), l.Number
		list.Detail = map[string]string{"entries": fmt.Sprint(len(l.Entries)), "certificates": fmt.Sprint(len(l.Certificates))}
	}
	versions[listRecord] = list
	if s.Kind.InForce != nil {
		v, err := s.Kind.InForce(ctx)
		if err != nil {
			return err
		}
		versions[s.Kind.Name] = v
	}
	for kind, v := range versions {
		if v.Digest == "" || v.Digest == s.recorded[kind] {
			continue
		}
		if f.Store != nil { // whose log all replicas have
			detail := map[string]string{"host": f.Host}
			maps.Copy(detail, v.Detail)
			v.Detail = detail
		}
		if err := s.recordVersion(ctx, inForcePrefix+f.Host+"/"+kind, kind, v); err != nil {
			return err
		}
		s.recorded[kind] = v.Digest
	}
	return nil
}

// recordVersion records under a key that a version is in force. If this was not recorded before, it
// also writes an audit row.
func (s *versionRecorder) recordVersion(ctx context.Context, key, kind string, v Version) error {
	var was Version
	modified, err := store.Load(ctx, s.Store, key, &was)
	if err != nil {
		return err
	}
	if kind == listRecord {
		s.newestList.Store(max(was.Serial, v.Serial))
		if v.Serial <= was.Serial { // the newer one stays on record until it is supplied
			return nil
		}
	}
	if was.Digest == v.Digest {
		return nil
	}
	row := Row{Time: time.Now().UTC(), Kind: kind, Outcome: Changed, Code: CodeInForce, Serial: v.Serial, Detail: v.Detail}
	row.Message = v.describe() + " came into force"
	if was.Name = v.Name; was.Digest != "" {
		row.Message += ", before it " + was.describe()
	}
	if v.Serial < was.Serial {
		row.Code = CodeRollback
	}
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = s.Store.Commit(ctx, store.Txn{
		If:   []store.Cond{{Key: key, Modified: modified}},
		Then: []store.Op{store.Put(key, value), row.Op()},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	row.Log(ctx, s.Logger)
	return nil
}

// describe returns the version in the form in which audit rows contain it.
func (v Version) describe() string {
	if v.Serial == 0 {
		return fmt.Sprintf("%s %s", v.Name, v.Digest)
	}
	return fmt.Sprintf("%s of serial %d", v.Name, v.Serial)
}
