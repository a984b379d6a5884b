// Package signers verifies the signatures of operators. Operators sign the documents of a cluster,
// its revocation lists, admissions and join grants. A cluster can require that several operators
// sign each text. All programs that accept such a text use this package.
package signers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/pubkey"
)

// Most is the maximum threshold, and the maximum number of signatures of one text.
const Most = 16

// Set is a set of public keys in Nix format ("name:base64"), at least Threshold of which must sign
// a text. A Threshold of zero counts as one.
type Set struct {
	Keys      []string
	Threshold int
}

// Any returns a Set of the given keys in which a signature by any one of them is enough.
func Any(keys ...string) Set { return Set{Keys: keys} }

// Need returns the number of different keys that must sign a text.
func (s Set) Need() int { return max(1, s.Threshold) }

// Join combines signatures of the same text into one string, separated by spaces, sorted and
// without duplicates. Each argument may contain several signatures.
func Join(signatures ...string) string {
	var all []string
	for _, s := range signatures {
		for one := range strings.FieldsSeq(s) {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Names returns the key names in signatures, separated by commas, for messages to people. It does
// not verify the signatures, so anybody could have made them.
func Names(signatures string) string {
	var all []string
	for one := range strings.FieldsSeq(signatures) {
		name, _, _ := strings.Cut(one, ":")
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// Signed returns the names of those keys in the set that have signed text, sorted. A key with
// several names is listed under the first one. Signatures by other keys are ignored.
func (s Set) Signed(text, signatures string) []string {
	names := []string{}
	seen := map[string]bool{}
	for _, k := range s.Keys {
		name, key, _ := strings.Cut(k, ":")
		if seen[key] || Any(k).Verify("", text, signatures) != nil {
			continue
		}
		seen[key] = true
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// MissingError is the error for a text that was signed by at least one key of a set, but not by
// enough of them.
type MissingError struct {
	What    string   // description of the text
	Signed  []string // names of the keys that signed
	Others  []string // names of the keys that did not sign
	Need    int      // number of keys that must sign
	ignored error    // reason why a pinned key was ignored; nil if no key was
}

func (e *MissingError) Error() string {
	text := fmt.Sprintf("%s: signed by %d of the %d keys that trust.threshold demands (%s), want %d more of %s: "+
		"another operator runs the same florctl command with --sign-only FILE, and you then pass --with FILE",
		e.What, len(e.Signed), e.Need, strings.Join(e.Signed, ", "), e.Need-len(e.Signed), strings.Join(e.Others, ", "))
	if e.ignored != nil {
		text += "; " + e.ignored.Error()
	}
	return text
}

// Verify returns nil if enough different keys of the set have signed text. The signatures are
// separated by spaces. The argument what describes the text, and errors begin with it. If some of
// the required keys have signed, but not enough, the error is a *MissingError.
//
// A key counts once, even if it has signed several times or is in the set under several names.
// Signatures by keys outside the set are ignored. So are weak keys in the set, because anybody can
// create signatures for them.
func (s Set) Verify(what, text, signatures string) error {
	given := strings.Fields(signatures)
	switch {
	case len(given) == 0:
		return fmt.Errorf("%s: not signed", what)
	case len(given) > Most:
		return fmt.Errorf("%s: %d signatures, want at most %d", what, len(given), Most)
	}
	parsed := make([]signature.Signature, 0, len(given))
	for _, one := range given {
		sig, err := signature.ParseSignature(one)
		if err != nil {
			return fmt.Errorf("%s: signature: %w", what, err)
		}
		parsed = append(parsed, sig)
	}
	missing := &MissingError{What: what, Need: s.Need()}
	seen := map[string]bool{}
	for _, k := range s.Keys {
		pin, err := signature.ParsePublicKey(k)
		if err != nil {
			return fmt.Errorf("pinned key %q: %w", k, err)
		}
		if err := pubkey.CheckEd25519(pin.Data); err != nil {
			missing.ignored = fmt.Errorf("%q is no key: %w", k, err)
			continue
		}
		if seen[string(pin.Data)] {
			continue
		}
		seen[string(pin.Data)] = true
		// Try signatures with other key names too: while keys rotate, two keys may have the same
		// name.
		if !slices.ContainsFunc(parsed, func(sig signature.Signature) bool { return pin.Verify(text, sig) }) {
			missing.Others = append(missing.Others, pin.Name)
			continue
		}
		if missing.Signed = append(missing.Signed, pin.Name); len(missing.Signed) == missing.Need {
			return nil
		}
	}
	switch {
	case len(missing.Signed) > 0:
		return missing
	case missing.ignored != nil:
		return fmt.Errorf("%s: signature by %q does not verify with any other pinned key, and %w", what, Names(signatures), missing.ignored)
	}
	return fmt.Errorf("%s: signature by %q does not verify with any pinned key", what, Names(signatures))
}

// Check returns an error if the set cannot be used: because a key cannot be parsed, or because the
// threshold is out of range or exceeds the number of different keys.
func (s Set) Check() error {
	distinct := map[string]bool{}
	for _, k := range s.Keys {
		pin, err := signature.ParsePublicKey(k)
		if err != nil {
			return fmt.Errorf("trust key %q: %w", k, err)
		}
		if pubkey.CheckEd25519(pin.Data) != nil {
			continue
		}
		distinct[string(pin.Data)] = true
	}
	switch {
	case s.Threshold < 0 || s.Threshold > Most:
		return fmt.Errorf("trust threshold %d, want 1 to %d", s.Threshold, Most)
	case s.Threshold > len(distinct):
		return fmt.Errorf("trust threshold %d with %d different keys: nobody could sign a document", s.Threshold, len(distinct))
	}
	return nil
}

// VerifyAny verifies the signatures of a text against several sets of keys. It returns nil if at
// least one set accepts them, and otherwise the error of the first set. See Set.Verify for the
// other parameters. A host needs several sets while a new manifest changes the signing keys.
func VerifyAny(what, text, signatures string, sets ...Set) error {
	var errs []error
	for _, s := range sets {
		err := s.Verify(what, text, signatures)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return errors.New(what + ": no keys are pinned")
	}
	return errs[0]
}
