# The recorded generation, and a secret without a recorded key.
{ base, merge, ... }:
merge base {
  secrets = {
    backup = {
      generate = "age";
      generation = 2;
      readers = [ { host = "alpha"; } ];
      public = ./public.json;
    };
    restore = {
      generate = "age";
      readers = [ { host = "alpha"; } ];
      public = ./public.json;
    };
    first = {
      generate = "ssh";
      readers = [ { host = "alpha"; } ];
      public = ./none.json;
    };
  };
  providers.secret.hosts = [ "alpha" ];
  providers.config.hosts = [ "alpha" ];
}
