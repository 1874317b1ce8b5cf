//go:build tools

// Package kustomize pins it so that it can be built as a dependency.
package kustomize

import _ "sigs.k8s.io/kustomize/kustomize/v5"
