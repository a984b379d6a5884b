{ base, merge, ... }:
merge base {
  providers.file.hosts = [ "alpha" ];
  # On different hosts they do not meet.
  services.a = {
    host = "alpha";
    port = 1;
    files.b-c.ref = "x";
  };
  services.a-b = {
    host = "beta";
    port = 2;
    files.c.ref = "y";
  };
}
