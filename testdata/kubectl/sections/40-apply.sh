# Declarative commands, on both sides.
section apply
sed 's/nginx:1/nginx:2/' "$here/objects/api.yaml" >"$tmp/image.yaml"
sed 's/replicas: 2/replicaz: 2/' "$here/objects/api.yaml" >"$tmp/misspelt.yaml"
sed 's/name: api$/name: owned/; s/app: api/app: owned/g' "$here/objects/api.yaml" >"$tmp/owned.yaml"
sed 's/replicas: 2/replicas: 3/' "$tmp/owned.yaml" >"$tmp/owned3.yaml"
check 'apply creates' 'k apply -f "$here/objects/api.yaml" | has "deployment.apps/api created"; k rollout status deployment/api --timeout=100s'
check 'applying the same is unchanged' 'same "$(k apply -f "$here/objects/api.yaml" | grep -c unchanged)" 2'
check 'applying a change configures' 'k apply -f "$tmp/image.yaml" | has "deployment.apps/api configured"; same "$(field deployment/api "{.spec.template.spec.containers[0].image}")" nginx:2'
check 'a misspelt field is refused' 'fails k apply -f "$tmp/misspelt.yaml" | has "unknown field"'
check 'apply --dry-run=server changes nothing' 'k apply --dry-run=server -f "$here/objects/api.yaml" | has "(server dry run)"; same "$(field deployment/api "{.spec.template.spec.containers[0].image}")" nginx:2'
check 'create --dry-run=server takes no ClusterIP' 'k create service clusterip dry --tcp=80 --dry-run=server | has "(server dry run)"; fails k get service dry | has NotFound'
check 'apply keeps what kubectl scale changed elsewhere' 'k annotate deployment/api note=kept; k apply -f "$tmp/image.yaml"; same "$(field deployment/api {.metadata.annotations.note})" kept'
check 'apply view-last-applied' 'k apply view-last-applied deployment/api | has nginx:2'
check 'diff shows a change and exits 1' 'set +e; out=$(k diff -f "$here/objects/api.yaml"); rc=$?; set -e; same $rc 1; has "nginx:1" <<<"$out"'
check 'diff without a change exits 0' 'k diff -f "$tmp/image.yaml"'
check 'server-side apply creates' 'k apply --server-side -f "$tmp/owned.yaml" | has serverside-applied'
check 'server-side apply changes a field it owns' 'k apply --server-side -f "$tmp/owned3.yaml"; same "$(field deployment/owned {.spec.replicas})" 3'
check 'server-side apply conflicts with kubectl scale' 'k scale deployment/owned --replicas=1; fails k apply --server-side -f "$tmp/owned.yaml" | has "conflict"; same "$(field deployment/owned {.spec.replicas})" 1'
check 'server-side apply --force-conflicts takes it over' 'k apply --server-side --force-conflicts -f "$tmp/owned.yaml"; same "$(field deployment/owned {.spec.replicas})" 2'
check 'managed fields name their managers' 'm=$(k get deployment owned -o "jsonpath={.metadata.managedFields[*].manager}" --show-managed-fields); has kubectl <<<"$m"'
check 'diff --server-side' 'set +e; k diff --server-side -f "$tmp/owned3.yaml" >/dev/null; rc=$?; set -e; same $rc 1'
check 'apply -k' 'mkdir -p "$tmp/kustom"; cp "$here/objects/api.yaml" "$tmp/kustom/"; printf "resources: [api.yaml]\nnamePrefix: k-\n" >"$tmp/kustom/kustomization.yaml"; k apply -k "$tmp/kustom" | has "deployment.apps/k-api created"; k delete -k "$tmp/kustom" --timeout=100s'
check 'replace' 'k get deployment api -o json >"$tmp/api.json"; sed "s/nginx:2/nginx:3/" "$tmp/api.json" | k replace -f -; same "$(field deployment/api "{.spec.template.spec.containers[0].image}")" nginx:3'
check 'replace of an old version conflicts' 'k get deployment api -o json >"$tmp/old.json"; k annotate deployment/api moved=on; fails k replace -f "$tmp/old.json" | has "the object has been modified"'
check 'edit' 'EDITOR="sed -i s/nginx:3/nginx:4/" k edit deployment api; same "$(field deployment/api "{.spec.template.spec.containers[0].image}")" nginx:4'
check 'patch, strategic: a list merges by key' 'k patch deployment api -p "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"server\",\"env\":[{\"name\":\"A\",\"value\":\"1\"}]}]}}}}"; same "$(field deployment/api "{.spec.template.spec.containers[*].image}")" nginx:4'
check 'patch, merge: null deletes' 'k patch deployment api --type=merge -p "{\"metadata\":{\"annotations\":{\"moved\":null}}}"; same "$(field deployment/api {.metadata.annotations.moved})" ""'
check 'patch, JSON: a failed test changes nothing' 'fails k patch deployment api --type=json -p "[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":99},{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":5}]" >/dev/null; same "$(field deployment/api {.spec.replicas})" 2'
check 'patch of the scale subresource' 'k patch deployment api --subresource=scale --type=merge -p "{\"spec\":{\"replicas\":1}}"; same "$(field deployment/api {.spec.replicas})" 1'
check 'patch of the status subresource leaves the spec' 'k patch deployment api --subresource=status --type=merge -p "{\"spec\":{\"replicas\":7}}"; same "$(field deployment/api {.spec.replicas})" 1'
check 'delete -f' 'k delete -f "$here/objects/api.yaml" --timeout=100s; fails k get deployment api | has NotFound; k wait pods -l app=api --for=delete --timeout=100s'
