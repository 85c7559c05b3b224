package main

import (
	"context"
	"fmt"
	"slices"
)

// experiment measures some things that belong together and adds rows to the report.
type experiment struct {
	name  string
	about func(*lab) string // what is done, for those who read the rows
	run   func(*lab, context.Context) error
	// asked leaves an experiment out unless it is named: one run shall not take longer than people wait.
	asked bool
}

// experiments in the order in which they run and are shown.
var experiments = []experiment{
	{name: "accept", run: (*lab).accept, about: (*lab).aboutAccept},
	{name: "deliver", run: (*lab).deliver, about: (*lab).aboutDeliver},
	{name: "queue", run: (*lab).queue, about: (*lab).aboutQueue},
	{name: "latency", run: (*lab).latency, about: (*lab).aboutLatency},
	{name: "lone", run: (*lab).lone, about: (*lab).aboutLone},
	{name: "backlog", run: (*lab).backlog, about: (*lab).aboutBacklog},
	{name: "endpoints", run: (*lab).endpoints, about: (*lab).aboutEndpoints},
	{name: "dead", run: (*lab).dead, about: (*lab).aboutDead},
	{name: "shrink", run: (*lab).shrink, about: (*lab).aboutShrink},
	{name: "sync", run: (*lab).sync, about: (*lab).aboutSync},
	{name: "encryption", run: (*lab).encryption, about: (*lab).aboutEncryption},
	{name: "idle", run: (*lab).idle, about: (*lab).aboutIdle},
	{name: "views", run: (*lab).views, about: (*lab).aboutViews, asked: true},
}

func experimentNames() []string {
	var names []string
	for _, e := range experiments {
		names = append(names, e.name)
	}
	return names
}

// wants tells whether an experiment was asked for: by name, or by naming none.
func (o options) wants(e experiment) bool {
	if o.only == nil {
		return !e.asked
	}
	return slices.Contains(o.only, e.name)
}

// checkNames refuses names that no experiment has.
func checkNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(experimentNames(), name) {
			return fmt.Errorf("--only %s: there is no such group; there are %v", name, experimentNames())
		}
	}
	return nil
}
