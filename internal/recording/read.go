package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/florete/florete/internal/agefile"
)

// Read describes a recording that Open has read.
type Read struct {
	Header
	Ended bool // false if the session goes on, or the host or its recorder stopped before the end
	Cut   bool // true if the last piece is incomplete, so that less than two seconds are missing
}

// PieceError is the error of a piece that cannot be read.
type PieceError struct {
	Piece int // from 1
	Err   error
}

func (e *PieceError) Error() string {
	return fmt.Sprintf("piece %d of the recording: %v", e.Piece, e.Err)
}

func (e *PieceError) Unwrap() error { return e.Err }

// Open decrypts a recording with one of the identities, and writes it to cast as an asciicast file.
// If a piece is damaged, Open has written the pieces before it, and returns a *PieceError.
func Open(recording io.Reader, identities []age.Identity, cast io.Writer) (r Read, err error) {
	lines := bufio.NewReader(recording)
	for n := 1; ; n++ {
		piece, err := next(lines)
		if err == io.EOF && n > 1 {
			return r, nil
		}
		if err == io.ErrUnexpectedEOF && n > 1 {
			r.Cut = true
			return r, nil
		}
		if err != nil && n == 1 {
			return r, errors.New("no recording: it does not begin with a whole piece that is sealed with age")
		}
		var plain []byte
		if err == nil {
			plain, err = open(piece, identities)
		}
		if err == nil && n == 1 {
			err = r.begin(plain)
		}
		if err != nil {
			return r, &PieceError{n, err}
		}
		if _, err := cast.Write(plain); err != nil {
			return r, err
		}
		r.Ended = ends(plain)
	}
}

// next returns the next armored piece. The error is io.EOF if there is none, or io.ErrUnexpectedEOF
// if it is incomplete.
func next(lines *bufio.Reader) (piece []byte, err error) {
	for {
		line, err := lines.ReadSlice('\n')
		piece = append(piece, line...)
		switch {
		case err == io.EOF && len(piece) == 0:
			return nil, io.EOF
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case err != nil || len(piece) > 2*maxPiece:
			return nil, errors.New("no armor of age")
		case bytes.Equal(line, []byte(armor.Footer+"\n")):
			return piece, nil
		}
	}
}

func open(piece []byte, identities []age.Identity) ([]byte, error) {
	packed, err := agefile.Open(piece, identities)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxPiece+1))
	if err == nil && len(plain) > maxPiece {
		err = fmt.Errorf("more than %d bytes", maxPiece)
	}
	return plain, err
}

func (r *Read) begin(plain []byte) error {
	first, _, _ := bytes.Cut(plain, []byte("\n"))
	if err := json.Unmarshal(first, &r.Header); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if r.Version != 2 {
		return fmt.Errorf("header: version %d, want 2", r.Version)
	}
	return nil
}

// ends reports whether the last event of a piece is the end of the session.
func ends(plain []byte) bool {
	plain = bytes.TrimSuffix(plain, []byte("\n"))
	var event []any
	err := json.Unmarshal(plain[bytes.LastIndexByte(plain, '\n')+1:], &event)
	return err == nil && len(event) == 3 && event[1] == exit
}
