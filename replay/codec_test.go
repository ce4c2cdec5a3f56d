package replay_test

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"testing"

	"github.com/submitonce/submitonce/replay"
)

func everyByte() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func TestRecordKeepsEveryByte(t *testing.T) {
	want := replay.StoredResponse{
		Status: 201,
		Header: http.Header{
			"Set-Cookie": {"a=1; Expires=Thu, 01 Jan 2026 00:00:00 GMT", "b=2"},
			"X-Latin":    {"caf\xe9", ""},
			"X-None":     nil,
		},
		Trailers: http.Header{"X-Sum": {"abc"}},
		Body:     everyByte(),
	}
	got, err := replay.DecodeResponse(replay.EncodeResponse(want))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v, want %+v", got, want)
	}
}

func TestRecordCutOffIsAnError(t *testing.T) {
	whole := replay.EncodeResponse(replay.StoredResponse{
		Status: 200, Header: http.Header{"Content-Type": {"text/plain"}, "Etag": {`"1"`}},
	})
	for n := range len(whole) {
		if _, err := replay.DecodeResponse(whole[:n]); !errors.Is(err, replay.ErrUnreadable) {
			t.Errorf("first %d of %d bytes: error %v, want ErrUnreadable", n, len(whole), err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(replay.EncodeResponse(replay.StoredResponse{Status: 204}))
	f.Add(replay.EncodeResponse(replay.StoredResponse{
		Status: 201, Header: http.Header{"Location": {"/1"}, "Set-Cookie": {"a", "b"}},
		Trailers: http.Header{"X": {"y"}}, Body: everyByte(),
	}))
	f.Add([]byte{1, 0, 200, 1, 255, 255, 255, 255, 255, 255, 255, 255, 127})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := replay.DecodeResponse(b)
		if err != nil {
			if !errors.Is(err, replay.ErrUnreadable) {
				t.Errorf("error %v is not ErrUnreadable", err)
			}
			return
		}
		again, err := replay.DecodeResponse(replay.EncodeResponse(r))
		if err != nil || again.Status != r.Status || !bytes.Equal(again.Body, r.Body) ||
			len(again.Header) != len(r.Header) {
			t.Errorf("round trip of %+v = %+v, %v", r, again, err)
		}
	})
}
