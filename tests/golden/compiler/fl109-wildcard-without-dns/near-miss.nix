# The cluster's own CA issues what it likes.
{ base, merge, ... }:
merge base {
  providers.tls = {
    hosts = [ "alpha" ];
    wildcards = [ "apps.internal" ];
  };
}
