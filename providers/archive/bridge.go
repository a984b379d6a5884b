package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

// Bridge returns the policies that provider hosts use during a rollout, when some hosts have the
// new version and others the former. Each permits the requests of both versions. Where the versions
// differ about the same need or node, the new version applies. The policies have the given serial
// and are not signed.
//
// Bridge leaves out hosts that are new, hosts whose policy does not change, and hosts that receive
// no documents over the network.
func Bridge(next, former map[string][]document.Document, serial int64) (map[string][]document.Document, error) {
	all := map[string][]document.Document{}
	for _, host := range slices.Sorted(maps.Keys(next)) {
		is, was := policyOf(next[host]), policyOf(former[host])
		var d document.Document
		var err error
		switch {
		case is == nil || former[host] == nil || !receives(next[host]):
			continue
		case was == nil: // it begins to provide
			envelope, body, _ := is.Bytes()
			d, err = edit(envelope, body, map[string]any{"serial": serial})
		case is.Envelope.Digest == was.Envelope.Digest:
			continue
		default:
			d, err = union(*is, *was, serial)
		}
		if err != nil {
			return nil, fmt.Errorf("policy of %s for the time of the rollout: %w", host, err)
		}
		all[host] = []document.Document{d}
	}
	return all, nil
}

func policyOf(documents []document.Document) *document.Document {
	i := slices.IndexFunc(documents, func(d document.Document) bool { return d.Envelope.Kind == document.DocPolicy })
	if i < 0 {
		return nil
	}
	return &documents[i]
}

// receives reports whether the manifest in documents makes the host fetch documents over the
// network.
func receives(documents []document.Document) bool {
	return slices.ContainsFunc(documents, func(d document.Document) bool {
		return d.Envelope.Kind == document.DocManifest && d.Manifest().Documents() != nil
	})
}

// union returns the next policy, extended by the parts of the former policy about which the next
// policy says nothing.
func union(next, former document.Document, serial int64) (document.Document, error) {
	var is, was struct {
		Devices []json.RawMessage `json:"devices"`
		Grants  []json.RawMessage `json:"grants"`
	}
	envelope, body, _ := next.Bytes()
	_, old, _ := former.Bytes()
	var fields map[string]json.RawMessage
	for _, err := range []error{json.Unmarshal(body, &fields), json.Unmarshal(body, &is), json.Unmarshal(old, &was)} {
		if err != nil {
			return document.Document{}, err
		}
	}
	kinds := next.Policy().Kinds
	grants, err := merge(is.Grants, was.Grants, func(g document.Grant) (string, bool) {
		_, runs := kinds[g.Kind]
		return g.Caller.String() + " " + g.Need, runs
	})
	if err != nil {
		return document.Document{}, err
	}
	devices, err := merge(is.Devices, was.Devices, func(d document.Device) (string, bool) { return d.ID.String(), true })
	if err != nil {
		return document.Document{}, err
	}
	fields["grants"], fields["devices"] = grants, devices
	text, err := json.Marshal(fields)
	if err == nil {
		text, err = hostapi.Canonical(text)
	}
	if err != nil {
		return document.Document{}, err
	}
	format := next.Envelope.Format
	if former.Envelope.Format.Newer(format) {
		format = former.Envelope.Format
	}
	return edit(envelope, text, map[string]any{"digest": document.Digest(text), "serial": serial, "format": format})
}

// merge returns the values of next, and the values of former whose keys are not in next. The
// function key returns the key of a value. It may leave out values.
func merge[T any](next, former []json.RawMessage, key func(T) (string, bool)) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, raw := range slices.Concat(former, next) {
		var v T
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, err
		}
		if k, ok := key(v); ok {
			all[k] = raw
		}
	}
	var list [][]byte
	for _, k := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[k])
	}
	return slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]")), nil
}
