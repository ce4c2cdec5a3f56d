package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
)

// parsedBody is the kind of fingerprint of a body that has been read before the
// guard could: it is taken of the values instead of the bytes.
const parsedBody = 'p'

// alreadyParsed reports whether middleware outside has made a form of the body,
// as checks of CSRF fields do. Nothing is left to be read then, and the token
// and the content are in the form.
func alreadyParsed(r *http.Request, kind bodyType) bool {
	switch {
	case kind.data:
		return r.MultipartForm != nil
	case kind.urlencoded:
		// For other methods ParseForm leaves the body alone.
		return r.PostForm != nil && (r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch)
	}
	return false
}

func (b *body) sumParsed() (fingerprint, bool) {
	h := newTargetHash(b.req, parsedBody)
	form := b.req.MultipartForm
	if b.kind.urlencoded {
		form = &multipart.Form{Value: b.req.PostForm}
	}
	values := maps.Clone(url.Values(form.Value))
	delete(values, b.field)
	writeSized(h, []byte(values.Encode())) // in order of names
	for _, name := range slices.Sorted(maps.Keys(form.File)) {
		for _, file := range form.File[name] {
			sum, err := sumFile(file)
			if err != nil {
				return fingerprint{}, false
			}
			for _, s := range []string{name, file.Filename, file.Header.Get("Content-Type")} {
				writeSized(h, []byte(s))
			}
			h.Write(sum)
		}
	}
	return fingerprint(h.Sum(nil)), true
}

func sumFile(file *multipart.FileHeader) ([]byte, error) {
	f, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	content := sha256.New()
	if _, err := io.Copy(content, f); err != nil {
		return nil, err
	}
	return content.Sum(nil), nil
}

// writeSized keeps neighbouring values apart.
func writeSized(h hash.Hash, b []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(b)))
	h.Write(size[:])
	h.Write(b)
}
