#!/usr/bin/env bash
# Makes ../static/viewer.js of src/*.js and three.js. Needs node and npm; the versions are in package.json.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp package.json "$work"
npm install --prefix "$work" --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error
sources=$(cat package.json src/*.js | sha256sum | cut -d' ' -f1)
NODE_PATH="$work/node_modules" "$work/node_modules/.bin/esbuild" src/main.js --bundle --minify --format=iife \
    --target=es2020 --charset=utf8 --legal-comments=eof --banner:js="/* ecs_fluid, sources $sources */" \
    --outfile=../static/viewer.js
cp "$work/node_modules/three/LICENSE" ../static/three-LICENSE.txt
