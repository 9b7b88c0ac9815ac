# Replaces Bacula's File Daemon by ferrofd, from a repository that the node has. The configuration is kept: this class
# doesn't touch /etc/bacula. An example, which is only parsed by our tests; see docs/migrating.md for the plan around it.
#
#   class { 'ferrofd': version => '1.0.0-1' }
#   class { 'ferrofd': ensure => stock }        # back
#
# @param ensure Which daemon the node has in the end.
# @param version The version of the package, or `present` for any.
# @param port The port on which the daemon listens.
class ferrofd (
  Enum['ferrofd', 'stock'] $ensure  = 'ferrofd',
  String[1]                $version = 'present',
  Integer[1, 65535]        $port    = 9102,
) {
  $stock = $facts['os']['family'] ? {
    'RedHat' => 'bacula-client',
    default  => 'bacula-fd',
  }
  # What is installed, and what goes when it is.
  if $ensure == 'ferrofd' {
    $wanted = 'ferrofd'
    $package_version = $version
  } else {
    $wanted = $stock
    $package_version = 'present'
  }
  $known = $facts['os']['family'] ? {
    'RedHat' => "rpm --query --quiet ${wanted}",
    default  => "dpkg-query --show --showformat='\${db:Status-Status}' ${wanted} 2>/dev/null | grep -qx installed",
  }
  $hex = sprintf('%04X', $port)

  # The removal of the other package stops its daemon, also in the middle of a job. The next job of a Director's queue
  # begins within two seconds of the end of the one before, so it looks three times.
  exec { 'ferrofd: wait until no Director is connected':
    command   => "for look in 1 2 3; do cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '\$2 ~ /:${hex}\$/ && \$4 == \"01\" { found = 1 } END { exit found }' || exit 1; [ \$look = 3 ] || sleep 2; done",
    provider  => shell,
    path      => ['/usr/sbin', '/usr/bin', '/sbin', '/bin'],
    unless    => $known,
    tries     => 120,
    try_sleep => 30,
  }

  if $facts['os']['family'] == 'RedHat' {
    $other = $ensure ? {
      'ferrofd' => $stock,
      default   => 'ferrofd',
    }
    exec { 'ferrofd: swap the packages':
      command  => "rpm --query --quiet ${other} && dnf --assumeyes swap ${other} ${wanted} || dnf --assumeyes install ${wanted}",
      provider => shell,
      path     => ['/usr/sbin', '/usr/bin', '/sbin', '/bin'],
      unless   => $known,
      require  => Exec['ferrofd: wait until no Director is connected'],
      before   => Package[$wanted],
    }
  }

  # apt removes the other one, because the two conflict.
  package { $wanted:
    ensure  => $package_version,
    require => Exec['ferrofd: wait until no Director is connected'],
  }

  exec { 'ferrofd: test the configuration':
    command     => 'bacula-fd -t -c /etc/bacula/bacula-fd.conf',
    path        => ['/usr/sbin', '/usr/bin', '/sbin', '/bin'],
    refreshonly => true,
    subscribe   => Package[$wanted],
  }

  service { 'bacula-fd':
    ensure  => running,
    enable  => true,
    require => Exec['ferrofd: test the configuration'],
  }
}
