// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
)

//go:embed assets
var assets embed.FS

// policy is the Content-Security-Policy of the page: only files and data of its own, no
// script or style in the text of the page, and no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Config says what a [Handler] serves.
type Config struct {
	// Own makes the report of this node, or gateway; nil in a demonstration.
	Own func(ctx context.Context, ask Ask) (*Node, error)
	// Collector makes the state; nil at a gateway: no page is served then, but the report for pages elsewhere.
	Collector *Collector
	// Controls carries out commands; nil at a node: no command is served then.
	Controls Controls
}

// Handler returns what serves the page, below /page/.
func Handler(cfg Config) http.Handler {
	mux := http.NewServeMux()
	if cfg.Collector != nil {
		cfg.servePage(mux)
	}
	if cfg.Own != nil {
		mux.HandleFunc("GET /page/node", func(w http.ResponseWriter, r *http.Request) {
			ask, err := readAsk(r)
			if err != nil {
				refuse(w, http.StatusBadRequest, err)
				return
			}
			n, err := cfg.Own(r.Context(), ask)
			if err != nil {
				refuse(w, http.StatusNotFound, err)
				return
			}
			reply(w, n)
		})
	}
	if cfg.Controls != nil {
		newCommands(cfg.Controls).register(mux)
	}
	return secured(NoForeignNames(mux))
}

// servePage serves the page and the state that it shows.
func (cfg Config) servePage(mux *http.ServeMux) {
	for path, file := range map[string]string{
		"/page/{$}": "index.html", "/page/page.css": "page.css", "/page/page.js": "page.js", "/page/icon.svg": "icon.svg",
	} {
		mux.Handle("GET "+path, asset(file))
	}
	mux.HandleFunc("GET /page/state", func(w http.ResponseWriter, r *http.Request) {
		ask, err := readAsk(r)
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		s := *cfg.Collector.State(r.Context(), ask.Group)
		if ask.Group > uint64(s.Groups) {
			refuse(w, http.StatusNotFound, fmt.Errorf("group: %d, want 1 to %d", ask.Group, s.Groups))
			return
		}
		if cfg.Controls != nil {
			c := cfg.Controls.State()
			s.Controls = &c
		}
		reply(w, s)
	})
}

// secured sets the headers of all answers.
func secured(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

// asset serves a file of the page.
func asset(name string) http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the path is wrong, which the first test finds
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) })
}

// readAsk reads the query of a request: group, 1 if absent, and upto.
func readAsk(r *http.Request) (ask Ask, err error) {
	ask.Group = 1
	for name, into := range map[string]*uint64{"group": &ask.Group, "upto": &ask.UpTo} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		if *into, err = strconv.ParseUint(text, 10, 64); err != nil {
			return ask, fmt.Errorf("%s: %q, want a number", name, Text(text))
		}
	}
	if ask.Group < 1 || ask.Group > shownGroups {
		return ask, fmt.Errorf("group: %d, want 1 to %d", ask.Group, shownGroups)
	}
	return ask, nil
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the caller may be gone
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // the caller may be gone
}
