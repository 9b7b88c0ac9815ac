# Replaces Bacula's File Daemon by ferrofd, from a repository that the minion has. The configuration is kept: this state
# doesn't touch /etc/bacula. An example, which is only linted by our tests; see docs/migrating.md for the plan around it.
#
#   salt HOST state.apply ferrofd
#   salt HOST state.apply ferrofd pillar='{"ferrofd": {"state": "stock"}}'     back
#
# Pillar: ferrofd:state (ferrofd, stock), ferrofd:version, ferrofd:port.

{% set state = salt['pillar.get']('ferrofd:state', 'ferrofd') %}
{% set version = salt['pillar.get']('ferrofd:version', '') %}
{% set port = '%04X' | format(salt['pillar.get']('ferrofd:port', 9102)) %}
{% set redhat = grains['os_family'] == 'RedHat' %}
{% set stock = 'bacula-client' if redhat else 'bacula-fd' %}
{% set wanted = 'ferrofd' if state == 'ferrofd' else stock %}
{% set other = stock if state == 'ferrofd' else 'ferrofd' %}

# The removal of the other package stops its daemon, also in the middle of a job. The next job of a Director's queue begins
# within two seconds of the end of the one before, so it looks three times.
ferrofd-idle:
  cmd.run:
    - name: "for look in 1 2 3; do cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$2 ~ /:{{ port }}$/ && $4 == \"01\" { found = 1 } END { exit found }' || exit 1; [ $look = 3 ] || sleep 2; done"
    - retry:
        attempts: 120
        interval: 30
    - unless:
        - fun: pkg.version
          args: [{{ wanted }}]

{% if redhat %}
ferrofd-swap:
  cmd.run:
    - name: dnf --assumeyes swap {{ other }} {{ wanted }}
    - onlyif: rpm --query --quiet {{ other }}
    - require:
        - cmd: ferrofd-idle
    - require_in:
        - pkg: ferrofd-package
{% endif %}

# apt removes the other one, because the two conflict.
ferrofd-package:
  pkg.installed:
    - name: {{ wanted }}
{% if state == 'ferrofd' and version %}
    - version: '{{ version }}'
{% endif %}
    - require:
        - cmd: ferrofd-idle

ferrofd-configuration:
  cmd.run:
    - name: bacula-fd -t -c /etc/bacula/bacula-fd.conf
    - onchanges:
        - pkg: ferrofd-package

ferrofd-service:
  service.running:
    - name: bacula-fd
    - enable: true
    - require:
        - pkg: ferrofd-package
        - cmd: ferrofd-configuration
