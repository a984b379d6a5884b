{ base, merge, ... }: merge base {
  providers.file.hosts = [ "alpha" ];
  services.wiki.files.a = { ref = "a"; after = [ "file-wiki-b" ]; };
  services.wiki.files.b = { ref = "b"; after = [ "file-wiki-a" ]; };
  services.wiki.files.c = { ref = "c"; after = [ "file-wiki-a" ]; };
}
