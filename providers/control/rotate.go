package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/florete/florete/internal/document"
	wire "github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// CodeRotate is that of an ordered rotation in the audit log.
const CodeRotate = "rotate"

// Rotate orders another secret for a need of a host.
type Rotate struct {
	Host string `json:"host"`
	Need string `json:"need"`
}

// Ordered is the rotation that the host will request, once it has the answer to its next
// report.
type Ordered struct {
	Rotate
	Rotation int `json:"rotation"`
}

// rotate orders the rotation after the one that the host reported: the same again, before
// the host has done it, orders nothing more.
func (c *call) rotate() (any, error) {
	var o Ordered
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, 4<<10))
	if err == nil {
		err = strictjson.Decode(b, &o.Rotate)
	}
	if err != nil {
		return nil, wire.Errorf(wire.CodeMalformed, `body: %v: want {"host":"ursula","need":"oidc-wiki"}`, err)
	}
	for {
		err := c.order(&o)
		if !errors.Is(err, store.ErrConflict) { // the host has reported meanwhile
			return o, err
		}
	}
}

func (c *call) order(o *Ordered) error {
	key := server.ReportPrefix + o.Host
	e, err := c.Archive.Get(c.r.Context(), key)
	if errors.Is(err, store.ErrNotFound) {
		return wire.Errorf(wire.CodeMissingInvalid, "host %.64q has not reported to this provider: /v1/hosts has those that did", o.Host)
	}
	var received hostreport.Kept
	if err == nil {
		err = json.Unmarshal(e.Value, &received)
	}
	if err != nil {
		return err
	}
	report, err := received.Decode()
	if err != nil {
		return fmt.Errorf("report of %s: %w", o.Host, err)
	}
	i := slices.IndexFunc(report.Needs, func(n hostreport.Need) bool { return n.ID == o.Need })
	if i < 0 {
		return wire.Errorf(wire.CodeMissingInvalid, "host %s has no need %.64q: /v1/needs has those that it reported", o.Host, o.Need)
	}
	if kind := report.Needs[i].Kind; kind == document.KindCert || kind == document.KindConfig {
		return wire.Errorf(wire.CodeRotationInvalid, "need %s of kind %s has no secret to rotate: run flor refetch %[1]s on %[3]s to fetch it again", o.Need, kind, o.Host)
	}
	o.Rotation = report.Needs[i].Rotations + 1
	before := received.Rotate[o.Need]
	if received.Rotate == nil {
		received.Rotate = map[string]int{}
	}
	received.Rotate[o.Need] = o.Rotation
	value, err := json.Marshal(received)
	if err != nil {
		return err
	}
	c.row.Outcome, c.row.Code, c.row.Need = server.Granted, CodeRotate, o.Need
	c.row.Message = fmt.Sprintf("rotation %d of need %s is ordered of host %s", o.Rotation, o.Need, o.Host)
	c.row.Detail = map[string]string{"host": o.Host,
		"before": fmt.Sprintf("rotation %d, ordered %d", o.Rotation-1, before), "after": fmt.Sprintf("rotation %d, ordered %d", o.Rotation-1, o.Rotation)}
	_, err = c.Archive.Commit(c.r.Context(), store.Txn{
		If:   []store.Cond{{Key: key, Modified: e.Modified}},
		Then: []store.Op{store.Put(key, value), c.row.Op()},
	})
	if err == nil {
		c.row.Log(c.r.Context(), c.Logger)
	}
	return err
}
