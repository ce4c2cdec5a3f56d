package replay

import "github.com/submitonce/submitonce/token"

// CORSAllowHeaders returns the request headers that a CORS policy has to allow
// (Access-Control-Allow-Headers) where pages of another origin submit. They are
// the default names: a [Config] with others needs those.
func CORSAllowHeaders() []string { return []string{token.HeaderName, IdempotencyKeyHeader} }

// CORSExposeHeaders returns the response headers that a CORS policy has to
// expose (Access-Control-Expose-Headers) for the browser client to see them. They
// are the default names, too.
func CORSExposeHeaders() []string {
	return []string{token.HeaderName, DefaultReplayedHeader, "Retry-After", "Location"}
}
