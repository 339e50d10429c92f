"""The pages: each module asks the memory what one page shows and fills its template."""
