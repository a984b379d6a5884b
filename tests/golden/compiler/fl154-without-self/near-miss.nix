{ base, ... }: removeAttrs base [ "serial" ] // { self.lastModified = 7; }
